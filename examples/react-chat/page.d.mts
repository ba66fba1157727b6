export function servePage(): Promise<{ origin: string; close(): void }>;
