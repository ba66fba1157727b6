declare module "s3rver" {
  /** A service that speaks S3, without checking signatures. */
  export default class S3rver {
    constructor(options: object);
    run(): Promise<{ port: number }>;
    close(): Promise<void>;
  }
}
