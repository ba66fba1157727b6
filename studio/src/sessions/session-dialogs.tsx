// What a session is called, and its end.

import { useState } from "react";
import { useClient } from "../data/session.tsx";
import { go } from "../place.ts";
import { Button } from "../ui/button.tsx";
import { Ask } from "../ui/dialog.tsx";
import { sentenceOf, useToaster } from "../ui/toast.tsx";
import { type Session, titleOf } from "./sessions.ts";

interface RenameProps {
  readonly session: Session;
  readonly onDone: () => Promise<void>;
  readonly onClose: () => void;
}

export function RenameSession({ session, onDone, onClose }: RenameProps) {
  const client = useClient();
  const { say } = useToaster();
  const [error, setError] = useState<string>();
  const { title: given } = session.metadata;
  const [isSure, makeSure] = useState(false);
  const save = async (form: FormData) => {
    try {
      const title = String(form.get("title")).trim();
      await client.updateSession(session.id, { metadata: { title: title === "" ? null : title } });
      await onDone();
      onClose();
    } catch (failure) {
      setError(sentenceOf(failure));
    }
  };
  const remove = async () => {
    if (!isSure) return makeSure(true);
    try {
      await client.deleteSession(session.id);
      onClose();
      go({ view: "sessions" });
      say(`Deleted ${titleOf(session)}.`);
      await onDone();
    } catch (failure) {
      setError(sentenceOf(failure));
    }
  };
  return (
    <Ask title="This session" action="Save" error={error} onSubmit={(form) => void save(form)} onClose={onClose}>
      <label>
        Title
        <input
          name="title"
          defaultValue={typeof given === "string" ? given : ""}
          placeholder={titleOf(session)}
          maxLength={200}
        />
      </label>
      <Button kind="danger" onClick={() => void remove()}>
        {isSure ? "Delete it with all its branches, for good" : "Delete the session…"}
      </Button>
    </Ask>
  );
}
