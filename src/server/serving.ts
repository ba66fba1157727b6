/** Where a server listens. */
export interface ServeOptions {
  /** Default 4600; 0 for any free port. */
  readonly port?: number;
  /** Default "127.0.0.1": this machine only. */
  readonly host?: string;
}

/** A listening server. */
export interface Serving {
  readonly port: number;
  /** Its URL. */
  readonly url: string;
  /** The URL with the token behind the `#`, which browsers don't send. */
  readonly startUrl: string;
  /** Stops listening, ends streams, gives runs `drainMs` to finish, hands the rest over, and closes the store. */
  close(options?: { drainMs?: number }): Promise<void>;
}
