// Encodes the query of a request to an agent.

/** Undefined values are omitted. */
export const encodeQuery = (values: Record<string, string | undefined>) =>
  new URLSearchParams(
    Object.entries(values).filter((entry): entry is [string, string] => entry[1] !== undefined),
  )
