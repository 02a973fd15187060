// Where the value of a secret is used in a request.

/** Where the coordinator replaces the placeholder in a request. */
export const SECRET_LOCATIONS = ['header', 'query', 'path', 'body'] as const
export type SecretLocation = (typeof SECRET_LOCATIONS)[number]
export const DEFAULT_SECRET_LOCATIONS: readonly SecretLocation[] = ['header']
