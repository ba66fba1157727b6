import { test } from "vitest";
import { holds, timeoutMs } from "./property.ts";
import { sideBySide } from "./side-by-side.ts";
import { storeKinds } from "./stores.ts";

const names = storeKinds.map((kind) => kind.name).join(", ");

test(`${names} and the model show the same after every step`, { timeout: timeoutMs }, async () => {
  await holds(sideBySide(storeKinds), 100);
});
