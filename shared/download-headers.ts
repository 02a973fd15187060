// The response headers of a download (spec §4.15). Does not import zod, whose load time the box command avoids.

/** The real path, percent-encoded where it is not printable ASCII. */
export const DOWNLOAD_PATH_HEADER = 'x-service-path'
/** CONTENT_DIRECTORY for a directory, absent for a file. */
export const DOWNLOAD_CONTENT_HEADER = 'x-service-content'
/** A directory is sent as a tar archive. */
export const CONTENT_DIRECTORY = 'directory'
/** The spec does not define the headers from here on. This one has the permission bits, in octal. */
export const DOWNLOAD_MODE_HEADER = 'x-service-mode'
/** The modification time, in seconds since the epoch. */
export const DOWNLOAD_MTIME_HEADER = 'x-service-mtime'
/** Only a directory has these counts, which are made before the archive is sent. */
export const DOWNLOAD_COUNT_HEADERS = {
  files: 'x-service-files',
  bytes: 'x-service-bytes',
  skipped: 'x-service-skipped',
} as const
