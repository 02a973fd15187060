// Codes of Node for the errors of TLS certificates.

/** The codes for a certificate of an authority that Node does not know, such as a private one. */
export const UNKNOWN_AUTHORITY_CODES: readonly string[] = [
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]
