// The certificate authorities of workspaces. The boxes of a workspace trust its authority, whose key never leaves the coordinator.
import type { Clock } from '../../shared/clock.ts'
import type { Keyring } from '../base/sealing/keyring.ts'
import { SecretValue } from '../base/sealing/secret-value.ts'
import type { Db } from '../db/open.ts'
import type { WorkspaceAuthorityRow } from '../db/schema.ts'
import { findAuthority, insertAuthority } from './authority-store.ts'
import type { LeafCertificate, WorkspaceAuthorities } from './types.ts'

/** Loads 80 modules that parse and write certificates. A coordinator without secrets does not use them. */
const loadCertificates = () => import('./certificates.ts')

/** The least recently used leaf is removed first. A leaf with its key has about 1 kB. */
export const MAX_CACHED_LEAVES = 1000
const RENEWED_BEFORE_MS = 3_600_000

export type AuthoritiesOptions = { db: Db; keyring: Keyring; clock: Clock }

export function createWorkspaceAuthorities({ db, keyring, clock }: AuthoritiesOptions): WorkspaceAuthorities {
  /** By workspace and host. Concurrent first connections share one leaf. */
  const leaves = new Map<string, Promise<LeafCertificate>>()

  const loadAuthority = async (workspaceId: string): Promise<WorkspaceAuthorityRow> =>
    (await findAuthority(db, workspaceId)) ?? (await insertAuthority(db, await createRow(workspaceId)))

  async function createRow(workspaceId: string): Promise<WorkspaceAuthorityRow> {
    const { createAuthority } = await loadCertificates()
    const now = clock.now()
    // The name is unique: OpenSSL selects an issuer by its name.
    const { certificate, key } = createAuthority(`Boxwood ${workspaceId}`, now)
    const { sealed, keyId } = keyring.seal(new SecretValue(key), getContext(workspaceId))
    return {
      workspace_id: workspaceId,
      certificate,
      private_key: sealed,
      key_id: keyId,
      created_at: now,
    }
  }

  async function mintLeaf(workspaceId: string, host: string): Promise<LeafCertificate> {
    const { createLeaf } = await loadCertificates()
    const { certificate, private_key } = await loadAuthority(workspaceId)
    const key = keyring.open(private_key, getContext(workspaceId)).reveal()
    return createLeaf({ certificate, key }, host, clock.now())
  }

  function store(cacheKey: string, leaf: Promise<LeafCertificate>): void {
    leaves.delete(cacheKey)
    leaves.set(cacheKey, leaf)
    const [oldest] = leaves.keys()
    if (leaves.size > MAX_CACHED_LEAVES && oldest !== undefined) leaves.delete(oldest)
  }

  async function getLeaf(workspaceId: string, host: string): Promise<LeafCertificate> {
    const cacheKey = `${workspaceId} ${host}`
    const cached = leaves.get(cacheKey)
    if (cached !== undefined) {
      const leaf = await cached
      const isCurrent = leaves.get(cacheKey) === cached
      if (isFresh(leaf)) {
        if (isCurrent) store(cacheKey, cached)
        return leaf
      }
      if (isCurrent) leaves.delete(cacheKey)
      return getLeaf(workspaceId, host)
    }
    const minting = mintLeaf(workspaceId, host)
    store(cacheKey, minting)
    try {
      return await minting
    } catch (error) {
      if (leaves.get(cacheKey) === minting) leaves.delete(cacheKey)
      throw error
    }
  }

  const isFresh = ({ expiresAt }: LeafCertificate): boolean => expiresAt - clock.now() > RENEWED_BEFORE_MS

  return { getCertificate: async (workspaceId) => (await loadAuthority(workspaceId)).certificate, getLeaf }
}

const getContext = (workspaceId: string) => ({ workspaceId, rowId: workspaceId })
