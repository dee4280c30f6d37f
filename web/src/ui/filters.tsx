import { visible } from "../content/visible";
import type { ListFilter, ListView, SessionList } from "../state/list";
import css from "./filters.module.css";

const DAY = 86_400_000;
const DATES = [
  ["1", "today"],
  ["7", "7 days"],
  ["30", "30 days"],
  ["365", "a year"],
] as const;

/** Which sessions are listed. */
export function Filters({ list, view }: { list: SessionList; view: ListView }) {
  const { filter, facets } = view;
  const choose = (news: ListFilter) => void list.choose({ ...filter, ...news });
  return (
    <div className={css.filters}>
      <fieldset className={css.which}>
        <legend className="hidden-visually">Which sessions</legend>
        <button type="button" aria-pressed={!filter.live} onClick={() => choose({ live: undefined })}>
          All
        </button>
        <button type="button" aria-pressed={Boolean(filter.live)} onClick={() => choose({ live: true })}>
          Live
        </button>
      </fieldset>
      <Select
        label="Agent"
        value={filter.agent ?? ""}
        options={facets?.agents.map((agent) => [agent.name, agent.name]) ?? []}
        any="agent ▾"
        onChange={(agent) => choose({ agent: agent || undefined })}
      />
      <Select
        label="Project"
        value={filter.project ?? ""}
        options={facets?.projects.map((project) => [project.name, project.name]) ?? []}
        any="project ▾"
        onChange={(project) => choose({ project: project || undefined })}
      />
      <Select
        label="Time"
        value={filter.since ? String(Math.round((Date.now() - filter.since) / DAY)) : ""}
        options={DATES}
        any="time ▾"
        onChange={(days) => choose({ since: days ? Date.now() - Number(days) * DAY : undefined })}
      />
    </div>
  );
}

interface SelectProps {
  label: string;
  value: string;
  any: string;
  options: readonly (readonly [string, string])[];
  onChange(value: string): void;
}

function Select({ label, value, any, options, onChange }: SelectProps) {
  return (
    <select
      aria-label={label}
      className={value ? `${css.select} ${css.set}` : css.select}
      value={value}
      onChange={(event) => onChange(event.target.value)}
    >
      <option value="">{any}</option>
      {options.map(([key, name]) => (
        <option key={key} value={key}>
          {visible(name)}
        </option>
      ))}
    </select>
  );
}
