// Certificates for tests of the broker, without openssl: the authority of a workspace, and one of the real hosts.

import { createAuthority, createLeaf } from '../../../coordinator/secrets/certificates.ts'
import type { LeafCertificate, WorkspaceAuthorities } from '../../../coordinator/secrets/types.ts'

export type TestAuthority = { certificate: string; getLeaf(host: string): LeafCertificate }

export function createTestAuthority(name: string): TestAuthority {
  const authority = createAuthority(name, Date.now())
  const leaves = new Map<string, LeafCertificate>()
  return {
    certificate: authority.certificate,
    getLeaf(host) {
      const leaf = leaves.get(host) ?? createLeaf(authority, host, Date.now())
      leaves.set(host, leaf)
      return leaf
    },
  }
}

export const toWorkspaceAuthorities = ({ certificate, getLeaf }: TestAuthority): WorkspaceAuthorities => ({
  getCertificate: async () => certificate,
  getLeaf: async (_workspaceId, host) => getLeaf(host),
})
