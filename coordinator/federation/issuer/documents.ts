// The two public documents with which a cloud verifies tokens: the OpenID configuration and the key set.
import type { JWK } from 'jose'
import type { FederationDocuments } from '../../../shared/api/federation.ts'
import { ALGORITHM } from './signing-keys.ts'

/** Below the URL of the issuer. */
export const CONFIGURATION_PATH = '/.well-known/openid-configuration'
export const KEYS_PATH = '/jwks'

export const createDocuments = (issuer: string, keys: readonly JWK[]): FederationDocuments => ({
  issuer,
  openidConfiguration: {
    issuer,
    jwks_uri: issuer + KEYS_PATH,
    response_types_supported: ['id_token'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: [ALGORITHM],
    scopes_supported: ['openid'],
    claims_supported: ['iss', 'sub', 'aud', 'iat', 'nbf', 'exp', 'jti', 'workspace_id', 'box_id'],
  },
  jwks: { keys: [...keys] },
})

/**
 * The path at which this coordinator serves the documents of the issuer; null: another host serves them.
 * @param publicUrl the URL of the coordinator, with the path that a proxy removes from requests
 */
export function getIssuerPath(issuer: string, publicUrl: string): string | null {
  const base = publicUrl.toLowerCase()
  return issuer === base || issuer.startsWith(`${base}/`) ? issuer.slice(base.length) : null
}
