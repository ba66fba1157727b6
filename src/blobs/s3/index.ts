export { type S3Credentials, type S3Options, s3Blobs } from "./blobs.ts";
