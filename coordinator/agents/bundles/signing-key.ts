// The key with which the coordinators of a deployment sign agent bundles. Machines install only bundles that it has signed.
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { join } from 'node:path'
import { SecretValue } from '../../base/sealing/secret-value.ts'
import { StartError } from '../../base/start-error.ts'
import { takeOverFile } from '../../deployment/take-over-file.ts'
import { ensureSealedValue, type SealedValues } from '../../deployment/values.ts'

/** The file of the data directory in which earlier versions stored the key. A backup of these versions has it. */
export const SIGNING_KEY_FILE = 'agent-signing-key.pem'

export type SigningKey = {
  privateKey: KeyObject
  /** Base64 of the public key in SPKI form. */
  publicKey: string
}

/** Creates the key at the first start. Throws StartError when the file of an earlier version does not contain an Ed25519 key. */
export async function openSigningKey({
  dataDir,
  ...values
}: SealedValues & { dataDir: string }): Promise<SigningKey> {
  const path = join(dataDir, SIGNING_KEY_FILE)
  const file = {
    path,
    parse: (pem: string) => exportKey(parseKey(pem, path)),
    consequence: 'Machines accept only the key of the coordinator from which they were installed.',
  }
  const pem = await takeOverFile(file, async (existing) => {
    const create = () => new SecretValue(existing ?? exportKey(createSigningKey().privateKey))
    return (await ensureSealedValue(values, 'agent_signing_key', create)).reveal()
  })
  return withPublicKey(createPrivateKey(pem))
}

export const createSigningKey = (): SigningKey => withPublicKey(generateKeyPairSync('ed25519').privateKey)

const withPublicKey = (privateKey: KeyObject): SigningKey => ({
  privateKey,
  publicKey: createPublicKey(privateKey).export({ format: 'der', type: 'spki' }).toString('base64'),
})

const exportKey = (key: KeyObject): string => key.export({ format: 'pem', type: 'pkcs8' }) as string

function parseKey(pem: string, path: string): KeyObject {
  const problem = `${path} does not contain an Ed25519 private key. Restore the file from a backup: machines accept no other key.`
  try {
    const key = createPrivateKey(pem)
    if (key.asymmetricKeyType === 'ed25519') return key
  } catch (cause) {
    throw new StartError(problem, { cause })
  }
  throw new StartError(problem)
}
