// Response headers of a download (spec §4.15). Copied from shared/api/files.ts: importing it loads zod (30 ms).

export const PATH_HEADER = 'x-service-path'
export const CONTENT_HEADER = 'x-service-content'
export const CONTENT_DIRECTORY = 'directory'
