export function servePage(mode?: "production" | "development"): Promise<{ origin: string; close(): void }>;
