// Headers of a download (spec §4.15), as in shared/api/files.ts, which would bring zod: 30 ms of each start.

export const PATH_HEADER = 'x-service-path'
export const CONTENT_HEADER = 'x-service-content'
export const CONTENT_DIRECTORY = 'directory'
