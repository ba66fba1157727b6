// Files on their way into a message: stored while the person still types, sent with the next message.

import { useCallback, useState } from "react";
import type { RemoteBranch } from "../data/bough.ts";
import { sentenceOf } from "../ui/toast.tsx";

export interface Attached {
  readonly key: number;
  readonly name: string;
  readonly mediaType: string;
  readonly size: number;
  readonly sent: number;
  readonly uri?: string;
  readonly failure?: string;
}

let last = 0;

export function useUploads(handle: RemoteBranch) {
  const [files, setFiles] = useState<readonly Attached[]>([]);
  const change = useCallback(
    (key: number, patch: Partial<Attached>) =>
      setFiles((all) => all.map((file) => (file.key === key ? { ...file, ...patch } : file))),
    [],
  );
  const add = useCallback(
    (chosen: Iterable<File>) => {
      for (const file of chosen) {
        const key = ++last;
        const { name, type, size } = file;
        setFiles((all) => [...all, { key, name, mediaType: type || "application/octet-stream", size, sent: 0 }]);
        handle.content.put(file, { name, onProgress: (sent) => change(key, { sent }) }).then(
          ({ uri, mediaType }) => change(key, { uri, mediaType, sent: size }),
          (error: unknown) => change(key, { failure: sentenceOf(error) }),
        );
      }
    },
    [handle, change],
  );
  const remove = useCallback((key: number) => setFiles((all) => all.filter((file) => file.key !== key)), []);
  const clear = useCallback(() => setFiles([]), []);
  return { files, add, remove, clear };
}
