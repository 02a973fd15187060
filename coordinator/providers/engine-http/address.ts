// Where the HTTP API of an engine listens.
import type { SecureContextOptions } from 'node:tls'

export type EngineAddress =
  | { kind: 'unix'; path: string }
  /** `url` is an origin. `tls` is for https only; without it, the certificate authorities of Node apply. */
  | {
      kind: 'tcp'
      url: string
      tls?: Pick<SecureContextOptions, 'ca' | 'cert' | 'key'> & {
        /** false: the certificate of the engine is not checked. */
        rejectUnauthorized?: boolean
        /** The PEM of the server's own certificate, which replaces the check of its name and authority. */
        pinnedCertificate?: string
      }
    }

/** For messages, such as `unix:///var/run/docker.sock`. */
export const describeAddress = (address: EngineAddress): string =>
  address.kind === 'unix' ? `unix://${address.path}` : address.url
