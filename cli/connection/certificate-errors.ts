// The errors of TLS certificates, by the codes of Node.

const PRIVATE_AUTHORITY =
  'this machine does not trust its certificate; for a private certificate authority, set NODE_EXTRA_CA_CERTS to the file of its certificate'

const CERTIFICATE_ERRORS: Record<string, string> = {
  SELF_SIGNED_CERT_IN_CHAIN: PRIVATE_AUTHORITY,
  DEPTH_ZERO_SELF_SIGNED_CERT: PRIVATE_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT: PRIVATE_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: PRIVATE_AUTHORITY,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: PRIVATE_AUTHORITY,
  CERT_HAS_EXPIRED: 'its certificate has expired',
  CERT_NOT_YET_VALID: 'its certificate is not valid yet; check the clock of this machine',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another host name',
}

/** undefined: another error. */
export const describeCertificateError = (code: string): string | undefined =>
  Object.hasOwn(CERTIFICATE_ERRORS, code) ? CERTIFICATE_ERRORS[code] : undefined
