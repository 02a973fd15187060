// Describes the errors of TLS certificates.
import { UNKNOWN_AUTHORITY_CODES } from '../../shared/certificate-codes.ts'

const UNKNOWN_AUTHORITY =
  'this machine does not trust its certificate; for a private certificate authority, set NODE_EXTRA_CA_CERTS to the file of its certificate'

const CERTIFICATE_ERRORS: Record<string, string> = {
  ...Object.fromEntries(UNKNOWN_AUTHORITY_CODES.map((code) => [code, UNKNOWN_AUTHORITY])),
  CERT_HAS_EXPIRED: 'its certificate has expired',
  CERT_NOT_YET_VALID: 'its certificate is not valid yet; check the clock of this machine',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another host name',
}

/** @param code of Node. Returns undefined for another error. */
export const describeCertificateError = (code: string): string | undefined =>
  Object.hasOwn(CERTIFICATE_ERRORS, code) ? CERTIFICATE_ERRORS[code] : undefined
