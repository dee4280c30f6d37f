const time = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const day = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });
const dayYear = new Intl.DateTimeFormat(undefined, { year: "numeric", month: "short", day: "numeric" });
const whole = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "medium" });

export const clock = (ms: number): string => time.format(ms);
export const exact = (ms: number): string => whole.format(ms);

const startOfDay = (ms: number): number => new Date(ms).setHours(0, 0, 0, 0);

function dayOf(ms: number, now: number): string {
  return (new Date(ms).getFullYear() === new Date(now).getFullYear() ? day : dayYear).format(ms);
}

/** From when to when, without saying twice what is the same. */
export function span(from: number, to: number, now = Date.now()): string {
  const today = startOfDay(now);
  const sameDay = startOfDay(from) === startOfDay(to);
  const name = (ms: number) => {
    if (startOfDay(ms) === today) return sameDay ? "" : "today ";
    return `${dayOf(ms, now)} `;
  };
  const first = name(from) + time.format(from);
  if (sameDay && time.format(from) === time.format(to)) return first;
  return `${first}–${sameDay ? "" : name(to)}${time.format(to)}`;
}

/** The heading below which a session of this time is listed. */
export function dayName(ms: number, now = Date.now()): string {
  const days = Math.round((startOfDay(now) - startOfDay(ms)) / 86_400_000);
  if (days <= 0) return "Today";
  if (days === 1) return "Yesterday";
  if (days < 7) return "This week";
  if (days < 31) return "This month";
  const date = new Date(ms);
  return new Intl.DateTimeFormat(undefined, { month: "long", year: "numeric" }).format(date);
}
