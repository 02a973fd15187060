// The stored form of credentials.
import { createHash } from 'node:crypto'

/** SHA-256, hex. Credentials are random, so no salt is needed. */
export const hashSecret = (secret: string): string => createHash('sha256').update(secret).digest('hex')
