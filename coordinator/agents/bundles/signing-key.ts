// The key with which the coordinator signs agent bundles. Machines install only bundles that it has signed.
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { writePrivateFile } from '../../base/data-directory.ts'
import { StartError } from '../../base/start-error.ts'

/** The name of a file in the data directory, with mode 0600. A backup must contain the file: machines accept no other key. */
export const SIGNING_KEY_FILE = 'agent-signing-key.pem'

export type SigningKey = {
  privateKey: KeyObject
  /** Base64 of the public key in SPKI form. */
  publicKey: string
}

/** Creates the key when there is none. Throws StartError when the file does not contain an Ed25519 key. */
export async function openSigningKey(dataDir: string): Promise<SigningKey> {
  const file = join(dataDir, SIGNING_KEY_FILE)
  const pem = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return createKeyFile(file)
    throw error
  })
  const privateKey = parseKey(pem, file)
  const publicKey = createPublicKey(privateKey).export({ format: 'der', type: 'spki' }).toString('base64')
  return { privateKey, publicKey }
}

async function createKeyFile(file: string): Promise<string> {
  const { privateKey } = generateKeyPairSync('ed25519')
  const pem = privateKey.export({ format: 'pem', type: 'pkcs8' }) as string
  await writePrivateFile(file, pem)
  return pem
}

function parseKey(pem: string, file: string): KeyObject {
  const problem = `${file} does not contain an Ed25519 private key. Restore the file from a backup: machines accept no other key.`
  try {
    const key = createPrivateKey(pem)
    if (key.asymmetricKeyType === 'ed25519') return key
  } catch (cause) {
    throw new StartError(problem, { cause })
  }
  throw new StartError(problem)
}
