// The table of the issuer.

export const KEY_STATES = ['next', 'active', 'retired'] as const
export type KeyState = (typeof KEY_STATES)[number]

/** A signing key. Its id is the key id (kid) of tokens. Times are milliseconds since the epoch. */
export type FederationKeyRow = {
  id: string
  /** next: published and not used yet. active: signs. retired: verifies tokens that it has signed. */
  state: KeyState
  /** JSON. */
  public_jwk: string
  /** Sealed PKCS #8 PEM. */
  private_key: string
  key_id: string
  created_at: number
  activated_at: number | null
  retired_at: number | null
}

declare module '../../db/schema.ts' {
  interface Tables {
    federation_keys: FederationKeyRow
  }
}
