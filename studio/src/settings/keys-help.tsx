// Every key there is.

import { Dialog } from "../ui/dialog.tsx";

const keyMap: readonly (readonly [string, string])[] = [
  ["Ctrl K", "find or do"],
  ["?", "this list"],
  ["g s, g i, g a", "sessions, inbox, agents"],
  ["n", "new session"],
  ["j, k", "next, previous message"],
  ["h, l", "previous, next version of the message"],
  ["[, ]", "previous, next fork point"],
  ["e", "edit it on a new branch"],
  ["r", "another answer on a new branch"],
  ["f", "fork at it"],
  ["c", "compare with another branch"],
  ["t", "time: then ← → step, with Shift by ten"],
  ["u", "undo the last turn"],
  ["m", "what the model saw"],
  ["i", "write a message"],
  ["a, d", "allow once, deny (with the focus on a question)"],
  ["1 … 5", "branches, log, model’s view, files, info"],
  ["Ctrl B, Ctrl J", "the left side, the right side"],
  ["Esc", "leave the box, back to now, or stop the run"],
];

export function KeysHelp({ onClose }: { onClose: () => void }) {
  return (
    <Dialog label="Keys" onClose={onClose}>
      <h2>Keys</h2>
      <KeyTable />
    </Dialog>
  );
}

export function KeyTable() {
  return (
    <table className="keys">
      <tbody>
        {keyMap.map(([keys, words]) => (
          <tr key={keys}>
            <th scope="row">
              <kbd>{keys}</kbd>
            </th>
            <td>{words}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
