// The variables by which the programs of a box use the listener, and trust the certificates of the coordinator.
import { PROXY_USER } from './credential.ts'
import type { TrustFiles } from './trust-files.ts'

/** 169.254.169.254 is the metadata service of clouds. */
const NO_PROXY = 'localhost,127.0.0.1,::1,169.254.169.254'

export type BrokerEndpoint = { port: number; credential: string }

/** HTTP_PROXY and ALL_PROXY are not set: values are substituted in TLS connections only. */
export function createVariables(
  { port, credential }: BrokerEndpoint,
  { authority, bundle }: TrustFiles,
): Record<string, string> {
  const proxy = `http://${PROXY_USER}:${credential}@127.0.0.1:${port}`
  return {
    HTTPS_PROXY: proxy,
    https_proxy: proxy,
    NO_PROXY,
    no_proxy: NO_PROXY,
    NODE_USE_ENV_PROXY: '1',
    // Node and Deno add these to their own authorities.
    NODE_EXTRA_CA_CERTS: authority,
    DENO_CERT: authority,
    // These replace the authorities of the system.
    SSL_CERT_FILE: bundle,
    REQUESTS_CA_BUNDLE: bundle,
    CURL_CA_BUNDLE: bundle,
    GIT_SSL_CAINFO: bundle,
    PIP_CERT: bundle,
    AWS_CA_BUNDLE: bundle,
    CARGO_HTTP_CAINFO: bundle,
  }
}
