// The platforms of agents, and the signature of an agent build.
import { createPublicKey, type KeyObject, sign, verify } from 'node:crypto'
import { type AgentBuild, toSignedText } from './agent-build.ts'

/** Platforms for which agents exist, in Node's notation. */
export const AGENT_PLATFORMS = ['linux-x64', 'linux-arm64'] as const
export type AgentPlatform = (typeof AGENT_PLATFORMS)[number]

export const signAgentBuild = (build: Omit<AgentBuild, 'signature'>, key: KeyObject): string =>
  sign(null, Buffer.from(toSignedText(build)), key).toString('base64')

/** @param publicKey in the PEM format. An invalid key verifies nothing. */
export function verifyAgentBuild(build: AgentBuild, publicKey: string): boolean {
  try {
    const key = createPublicKey(publicKey)
    const signature = Buffer.from(build.signature, 'base64')
    return (
      key.asymmetricKeyType === 'ed25519' && verify(null, Buffer.from(toSignedText(build)), key, signature)
    )
  } catch {
    return false
  }
}

/** @param base64 the key in SPKI form, on one line */
export const formatPublicKey = (base64: string): string =>
  `-----BEGIN PUBLIC KEY-----\n${base64}\n-----END PUBLIC KEY-----\n`
