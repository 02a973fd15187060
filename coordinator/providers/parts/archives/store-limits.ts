// What archives and copies of boxes may use.

export type StoreLimits = {
  /** The maximum length of the tar stream. */
  maxBytes: number
  /** The last `reserveBytes` of the file system are not used. */
  reserveBytes: number
}

export class StoreLimitError extends Error {
  override name = 'StoreLimitError'
}
