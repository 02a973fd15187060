// The stored form of credentials.
import { hash } from 'node:crypto'

/** SHA-256, hex. Credentials are random, so no salt is needed. */
export const hashSecret = (secret: string): string => hash('sha256', secret, 'hex')
