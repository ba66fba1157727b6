/** A store by its URL, as an object, so that what it is asked for can be noted. */
export async function openStoreAt(url) {
  const [scheme] = url.split(":");
  if (scheme === "sqlite") return (await import("bough/stores/sqlite")).sqliteStore(url.slice("sqlite:".length));
  if (scheme === "postgres") return (await import("bough/stores/postgres")).postgresStore(url);
  if (scheme === "redis") return (await import("bough/stores/redis")).redisStore(url, { onWarning: () => {} });
  throw new Error(`The cluster knows no store for "${url}".`);
}
