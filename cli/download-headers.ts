// Response headers of a download (spec §4.15). Copied from shared/api/files.ts: importing it loads zod (30 ms).

export const DOWNLOAD_PATH_HEADER = 'x-service-path'
export const DOWNLOAD_CONTENT_HEADER = 'x-service-content'
/** The value of X-Service-Content for a directory, which is sent as a tar archive. */
export const CONTENT_DIRECTORY = 'directory'
