import { X } from "lucide-react";
import type { Picture } from "../state/pictures";
import css from "./prompt-pictures.module.css";

interface Props {
  pictures: readonly Picture[];
  onRemove(at: number): void;
}

/** The pictures that go with a message. */
export function PromptPictures({ pictures, onRemove }: Props) {
  if (!pictures.length) return null;
  return (
    <ul className={css.pictures} aria-label="Pictures">
      {pictures.map(({ mimeType, data, name }, at) => (
        <li key={at}>
          <img src={`data:${mimeType};base64,${data}`} alt={name} />
          <button type="button" onClick={() => onRemove(at)} aria-label={`Remove ${name}`}>
            <X size={14} aria-hidden />
          </button>
        </li>
      ))}
    </ul>
  );
}
