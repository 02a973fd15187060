// The routes of the issuer: its public documents, their list for static hosting, and the rotation by the operator.
import { federationDocumentsSchema, rotateFederationResponseSchema } from '../../../shared/api/federation.ts'
import { byKey, byOperator } from '../../http/access.ts'
import type { PublicRoute } from '../../http/public-routes.ts'
import { type Route, route } from '../../http/route.ts'
import { CONFIGURATION_PATH, KEYS_PATH } from './documents.ts'
import type { Issuer } from './issuer.ts'
import type { RotateKeys } from './rotate-keys.ts'

/** Shorter than the time for which a key is published before it is used. */
const CACHE_CONTROL = 'public, max-age=3600'

/** @param path the path of the issuer at this coordinator */
export function documentRoutes(issuer: Pick<Issuer, 'getDocuments'>, path: string): PublicRoute[] {
  const documentRoute = (url: string, name: 'openidConfiguration' | 'jwks'): PublicRoute => ({
    path: path + url,
    async handler(_request, reply) {
      const documents = await issuer.getDocuments()
      reply.header('cache-control', CACHE_CONTROL)
      return documents[name]
    },
  })
  return [documentRoute(CONFIGURATION_PATH, 'openidConfiguration'), documentRoute(KEYS_PATH, 'jwks')]
}

export const federationRoutes = (issuer: Pick<Issuer, 'getDocuments'>): Route[] => [
  route({
    id: 'federation.getDocuments',
    method: 'GET',
    path: '/federation/documents',
    access: byKey('workspace', 'read', { roles: 'owner' }),
    summary: 'Get the public documents of the identity issuer',
    description:
      'For hosts that serve the documents below the URL of the issuer, when the coordinator cannot be reached from the internet. They have no private key. Publish them again after each rotation: `box federation publish` writes the files.',
    responses: { 200: federationDocumentsSchema },
    errors: ['aws_federation_disabled'],
    handler: () => issuer.getDocuments(),
  }),
]

export const rotationRoutes = (rotateKeys: RotateKeys): Route[] => [
  route({
    id: 'operator.rotateKey',
    method: 'POST',
    path: '/operator/federation/rotate',
    access: byOperator(),
    summary: 'Rotate the signing key of the identity issuer',
    description:
      'The next key signs from now on. Tokens of the previous key stay valid until they expire. Without an effect (rotated is false) while the next key has been published for less than 24 hours, because a cloud may not know it yet. The coordinator rotates the keys every 30 days by itself.',
    responses: { 200: rotateFederationResponseSchema },
    errors: ['aws_federation_disabled'],
    handler: ({ actor }) => rotateKeys(actor),
  }),
]
