// What a box gets for AWS: the profiles of the roles of its workspace, and a token. Nothing for a box that may not have them.
import type { CloudCredentials, CloudProfile } from '../../../shared/api/cloud-credentials.ts'
import { findBox } from '../../boxes/lookups.ts'
import type { Db } from '../../db/open.ts'
import type { BoxRow } from '../../db/schema.ts'
import type { EnvironmentVersions } from '../../environments/types.ts'
import { findRole as findRoleOfUser, findWorkspace } from '../../identity/lookups.ts'
import type { IdentityToken, Issuer } from '../issuer/issuer.ts'
import { listRoles } from './role-store.ts'
import { AUDIENCE, getsCredentials, toSessionName } from './rules.ts'

export type BoxProfiles = {
  workspaceId: string
  /** Whether the workspace has roles, also when the box gets none. */
  hasRoles: boolean
  isRestricted: boolean
  profiles: CloudProfile[]
}

export type CredentialLoader = {
  /** undefined: there is no such box. */
  loadProfiles(boxId: string): Promise<BoxProfiles | undefined>
  issueToken(workspaceId: string, boxId: string): Promise<IdentityToken>
}

export function createCredentialLoader(options: {
  db: Db
  issuer: Pick<Issuer, 'url' | 'issue'>
  environments: Pick<EnvironmentVersions, 'loadVersion'>
}): CredentialLoader {
  const { db, issuer, environments } = options

  /** null: the box has no environment. */
  async function loadChannel({ environment_id: id, environment_version_no: no }: BoxRow) {
    if (id === null || no === null) return null
    const version = await environments.loadVersion(id, no)
    return version?.config.toggles.cloud ?? false
  }

  async function mayHaveCredentials(box: BoxRow): Promise<boolean> {
    const { owner_user_id: ownerId } = box
    const workspace = await findWorkspace(db, box.workspace_id)
    return getsCredentials({
      isRestricted: box.restricted === 1,
      isDeleted: box.desired_state === 'terminated',
      isWorkspaceClosing: workspace === undefined || workspace.closing_at !== null,
      channel: await loadChannel(box),
      isOwnedByOwner: ownerId !== null && (await findRoleOfUser(db, ownerId)) === 'owner',
    })
  }

  return {
    async loadProfiles(boxId) {
      const box = await findBox(db, boxId)
      if (box === undefined) return undefined
      const roles = await listRoles(db, box.workspace_id)
      const isAllowed = issuer.url !== null && roles.length > 0 && (await mayHaveCredentials(box))
      const profiles = roles.map((role) => ({
        name: role.profile,
        roleArn: role.role_arn,
        roleSessionName: toSessionName(box.hostname),
      }))
      return {
        workspaceId: box.workspace_id,
        hasRoles: roles.length > 0,
        isRestricted: box.restricted === 1,
        profiles: isAllowed ? profiles : [],
      }
    },
    issueToken: (workspaceId, boxId) => issuer.issue({ workspaceId, boxId }, AUDIENCE),
  }
}

export const toRequest = (
  profiles: CloudProfile[],
  token: Pick<IdentityToken, 'content'> | null,
): CloudCredentials => ({
  token: token === null ? null : { content: token.content.reveal() },
  profiles,
})
