// The files of certificates that the programs of a box trust.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { rootCertificates } from 'node:tls'
import { replaceFile } from '../durable-file.ts'

export type TrustFiles = {
  /** The certificate authority of the workspace. */
  authority: string
  /** The authorities of the system, and that of the workspace. */
  bundle: string
}

/** Debian and Alpine; Fedora; Red Hat; openSUSE; Alpine without the package ca-certificates. */
export const SYSTEM_BUNDLES = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
  '/etc/ssl/cert.pem',
]

export const getTrustFiles = (dir: string): TrustFiles => ({
  authority: join(dir, 'ca.pem'),
  bundle: join(dir, 'ca-bundle.pem'),
})

/**
 * Writes the files that have changed. Processes of the box may be reading them.
 * @param certificate PEM
 */
export async function writeTrustFiles(
  dir: string,
  certificate: string,
  systemBundles: readonly string[] = SYSTEM_BUNDLES,
): Promise<void> {
  const { authority, bundle } = getTrustFiles(dir)
  const own = `${certificate.trim()}\n`
  await replaceIfChanged(authority, own)
  await replaceIfChanged(bundle, `${(await readSystemBundle(systemBundles)).trim()}\n${own}`)
}

async function readSystemBundle(paths: readonly string[]): Promise<string> {
  for (const path of paths) {
    const text = await readIfExists(path)
    if (text.includes('-----BEGIN CERTIFICATE-----')) return text
  }
  return rootCertificates.join('\n')
}

async function replaceIfChanged(path: string, content: string): Promise<void> {
  if ((await readIfExists(path)) !== content) await replaceFile(path, content, { mode: 0o644 })
}

/** '' when the file cannot be read. */
const readIfExists = (path: string): Promise<string> => readFile(path, 'utf8').catch(() => '')
