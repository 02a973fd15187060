// Creates certificates for tests of TLS.
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { requires } from './requires.ts'

/** The PEM texts, which are also in the files `key` and `cert` of the directory. Needs openssl. */
export function createCertificate(dir: string, host: string): { key: string; cert: string; ca: string } {
  const missing = requires('openssl')
  if (missing !== false) throw new Error(missing)
  const file = (name: string) => join(dir, name)
  const run = (...args: string[]) => execFileSync('openssl', args, { stdio: 'ignore' })
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  const ca = ['-x509', '-keyout', file('ca.key'), '-out', file('ca.pem'), '-subj', '/CN=Test CA']
  const names = `subjectAltName=DNS:${host},IP:127.0.0.1`
  run('req', ...newKey, ...ca)
  run('req', ...newKey, '-keyout', file('key'), '-out', file('csr'), '-subj', `/CN=${host}`)
  writeFileSync(file('ext'), names)
  run(
    ...['x509', '-req', '-in', file('csr'), '-CA', file('ca.pem'), '-CAkey', file('ca.key')],
    ...['-set_serial', '1', '-extfile', file('ext'), '-out', file('cert')],
  )
  const read = (name: string) => readFileSync(file(name), 'utf8')
  return { key: read('key'), cert: read('cert'), ca: read('ca.pem') }
}
