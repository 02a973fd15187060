// An identity issuer in memory, for tokens that the coordinator does not issue.
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose'

export const TEST_ISSUER = 'https://boxes.example.com/oidc'

/** @param now in milliseconds since the epoch */
export async function createTestIssuer(now: () => number) {
  const { publicKey, privateKey } = await generateKeyPair('RS256')
  const jwk = { ...(await exportJWK(publicKey)), kid: 'test', alg: 'RS256', use: 'sig' }
  const documents: Record<string, unknown> = {
    '/.well-known/openid-configuration': { issuer: TEST_ISSUER, jwks_uri: `${TEST_ISSUER}/jwks` },
    '/jwks': { keys: [jwk] },
  }
  return {
    readDocument: async (path: string) => documents[path],
    /** Signs a valid token for a box of the workspace `ours` with these changes. */
    sign: (claims: JWTPayload = {}) => {
      const seconds = Math.floor(now() / 1000)
      const valid = {
        iss: TEST_ISSUER,
        sub: 'workspace:ours:box:fig',
        aud: 'sts.amazonaws.com',
        iat: seconds,
        nbf: seconds,
        exp: seconds + 3600,
      }
      return new SignJWT({ ...valid, ...claims })
        .setProtectedHeader({ alg: 'RS256', kid: 'test' })
        .sign(privateKey)
    },
  }
}
