// Reads what a sign-in stores about its client.
import type { FastifyRequest } from 'fastify'
import { readSessionCookie } from '../../http/auth.ts'
import { getClientAddress } from '../../http/client-address.ts'
import type { Client } from './start-session.ts'

export const readClient = (request: FastifyRequest): Client => ({
  userAgent: request.headers['user-agent'] ?? null,
  address: getClientAddress(request),
  token: readSessionCookie(request.headers),
})
