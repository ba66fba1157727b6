// The files of a branch: uploads, artifacts of tools, pictures and speech of models.

import { useCallback } from "react";
import type { RemoteBranch } from "../data/bough.ts";
import { usePolled } from "../data/polled.ts";
import { ago, bytes } from "../ui/time.ts";
import { sentenceOf } from "../ui/toast.tsx";
import { StoredFile } from "./parts.tsx";

export function FilesPane({ handle }: { handle: RemoteBranch }) {
  const ask = useCallback(() => handle.content.list(), [handle]);
  const { value, error } = usePolled(ask, 15_000);
  if (error !== undefined) return <p className="failure pad">{sentenceOf(error)}</p>;
  if (!value) return <p className="quiet pad">Reading …</p>;
  if (value.length === 0)
    return <p className="quiet pad">No files. Drop one on the message box, or paste a picture.</p>;
  return (
    <ul className="files pad">
      {value.map(({ id, name, mediaType, size, createdAt }) => (
        <li key={`${id}${name}`}>
          <StoredFile contentId={id} mediaType={mediaType} name={name ?? id.slice(0, 12)} />
          <span className="quiet">
            {bytes(size)} · {ago(createdAt)}
          </span>
        </li>
      ))}
    </ul>
  );
}
