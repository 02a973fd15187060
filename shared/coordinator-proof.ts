// The proof that a response to an agent comes from its coordinator: a signature with the key that signs the agent bundles.
// Another program that listens at the address of the coordinator, or in front of it without TLS, cannot create one.
import { randomBytes, verify } from 'node:crypto'

/** 32 random bytes in base64url. */
export const NONCE = /^[A-Za-z0-9_-]{43}$/
export const createNonce = (): string => randomBytes(32).toString('base64url')

/** The content of a response to an agent, as far as the proof covers it. */
export type ProvenResponse = {
  boxId: string
  /** The nonce of the request. */
  nonce: string
  status: number
  /** The error code; empty when the connection is accepted. */
  code: string
}

/** The first line differs from the texts that the key signs for other purposes, such as that of agent-build.ts. */
export const toProofText = ({ boxId, nonce, status, code }: ProvenResponse): string =>
  `boxwood-connection\n${boxId}\n${nonce}\n${status}\n${code}\n`

/**
 * @param proof Ed25519 over toProofText(), in base64
 * @param publicKey in the PEM format. An invalid key verifies nothing.
 */
export function verifyProof(response: ProvenResponse, proof: unknown, publicKey: string): boolean {
  if (typeof proof !== 'string') return false
  try {
    return verify(null, Buffer.from(toProofText(response)), publicKey, Buffer.from(proof, 'base64'))
  } catch {
    return false
  }
}
