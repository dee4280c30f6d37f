import { AppWindow, FileText, Globe, Image as ImageIcon, type LucideIcon, Package } from "lucide-react";
import type { ArtifactItem } from "../api/types";
import { SafeLink } from "../content/link";
import { visible } from "../content/visible";
import { MiddleText, oneLine } from "./middle-text";
import styles from "./row.module.css";

const ICONS: Record<string, LucideIcon> = {
  web_app: Globe,
  nextjs_app: AppWindow,
  image: ImageIcon,
  file: FileText,
};

/** Something the agent made. */
export function Artifact({ item }: { item: ArtifactItem }) {
  const { type, name, path, preview_url: preview } = item.artifact;
  const Icon = Object.hasOwn(ICONS, type) ? ICONS[type]! : Package;
  return (
    <div className={`${styles.row} ${styles.framed}`}>
      <Icon size={16} strokeWidth={1.75} aria-hidden="true" className={styles.icon} />
      <span className={styles.name}>{oneLine(name || path || "Something without a name")}</span>
      {path && path !== name && (
        <span className={styles.detail}>
          <MiddleText mono path text={path} />
        </span>
      )}
      {type && <span className={styles.aside}>{oneLine(type.replaceAll("_", " "))}</span>}
      {preview && (
        <span className={styles.link}>
          <SafeLink href={preview}>{/^https?:/i.test(preview) ? "Preview" : visible(preview)}</SafeLink>
        </span>
      )}
    </div>
  );
}
