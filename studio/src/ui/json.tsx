// JSON as a tree that opens where somebody looks.

import { counted } from "./time.ts";

const inlineLimit = 60;
const manyItems = 200;

export function Json({ value, name, isOpen = true }: { value: unknown; name?: string | undefined; isOpen?: boolean }) {
  const label = name === undefined ? null : <span className="json-name">{name}: </span>;
  if (typeof value !== "object" || value === null) {
    return (
      <div className="json">
        {label}
        <Scalar value={value} />
      </div>
    );
  }
  const entries = Object.entries(value);
  const short = JSON.stringify(value);
  if (short.length <= inlineLimit) {
    return (
      <div className="json">
        {label}
        <span>{short}</span>
      </div>
    );
  }
  const what = counted(entries.length, Array.isArray(value) ? "item" : "field");
  return (
    <details className="json" open={isOpen}>
      <summary>
        {label}
        <span className="quiet">{what}</span>
      </summary>
      {entries.slice(0, manyItems).map(([key, item]) => (
        <Json key={key} name={key} value={item} isOpen={false} />
      ))}
      {entries.length > manyItems && <div className="quiet">and {entries.length - manyItems} more</div>}
    </details>
  );
}

function Scalar({ value }: { value: unknown }) {
  const kind = value === null ? "null" : typeof value;
  return <span className={`json-${kind}`}>{typeof value === "string" ? JSON.stringify(value) : String(value)}</span>;
}
