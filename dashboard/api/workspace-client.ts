// Requests about the workspace: its snapshots, secrets, AWS roles, keys, members, policies, audit log, sessions, machines and
// settings.
import type { AgentList, PatchRolloutRequest, RolloutResponse } from '../../shared/api/agents.ts'
import type { AuditChainPage, AuditList } from '../../shared/api/audit.ts'
import type { BillingDetails, EntryList } from '../../shared/api/billing.ts'
import type { Box } from '../../shared/api/boxes.ts'
import type {
  CreateEnvironmentRequest,
  Environment,
  PatchEnvironmentRequest,
  UpgradedEnvironment,
} from '../../shared/api/environments.ts'
import type {
  AwsConnect,
  AwsRoleList,
  AwsRoleResponse,
  ConnectRoleRequest,
  CreateAwsConnectRequest,
} from '../../shared/api/federation.ts'
import type { Image, ImageList } from '../../shared/api/images.ts'
import type {
  ApiKey,
  CreateKeyRequest,
  KeyList,
  KeyWithSecret,
  UpdateKeyRequest,
} from '../../shared/api/keys.ts'
import type {
  CreateEnrollmentRequest,
  CreateEnrollmentResponse,
  EnrollmentList,
} from '../../shared/api/machines.ts'
import type { Invitation, InviteRequest, Member, UpdateMemberRequest } from '../../shared/api/members.ts'
import type { PatchPolicyRequest, PolicyResponse } from '../../shared/api/policies.ts'
import type {
  BrokerTest,
  CreateSecretRequest,
  Grantee,
  MountSecretRequest,
  PatchSecretRequest,
  Secret,
  SecretGrant,
  SecretMount,
  SecretUse,
} from '../../shared/api/secrets.ts'
import type { IssuedCode, Session, SignedInUser } from '../../shared/api/sessions.ts'
import type { RestoreRequest, Snapshot } from '../../shared/api/snapshots.ts'
import type { Usage } from '../../shared/api/usage.ts'
import type { UpdateWorkspaceRequest, Workspace } from '../../shared/api/workspaces.ts'
import type { ClientSend } from './client.ts'

export type MountList = { mounts: SecretMount[]; broker: BrokerTest }

export type WorkspaceClient = ReturnType<typeof createWorkspaceClient>

/** The methods reject with BoxwoodError. */
export function createWorkspaceClient(send: ClientSend) {
  const path = (collection: string, id: string, action = '') =>
    `${collection}/${encodeURIComponent(id)}${action}`
  return {
    restoreSnapshot: (id: string, request: RestoreRequest, key: string) =>
      send<{ box: Box }>('POST', path('snapshots', id, '/restore'), request, key),
    deleteSnapshot: (id: string) => send<{ snapshot: Snapshot }>('DELETE', path('snapshots', id)),
    nameTemplate: (id: string, name: string) =>
      send<{ snapshot: Snapshot; previous: Snapshot | null }>('POST', path('snapshots', id, '/template'), {
        name,
      }),
    removeTemplate: (id: string) => send<undefined>('DELETE', path('snapshots', id, '/template')),

    createEnvironment: (request: CreateEnvironmentRequest) =>
      send<{ environment: Environment }>('POST', 'environments', request),
    updateEnvironment: (id: string, request: PatchEnvironmentRequest) =>
      send<{ environment: Environment }>('PATCH', path('environments', id), request),
    setDefaultEnvironment: (id: string) =>
      send<{ environment: Environment }>('POST', path('environments', id, '/default')),
    upgradeEnvironment: (id: string) =>
      send<UpgradedEnvironment>('POST', path('environments', id, '/upgrade')),
    deleteEnvironment: (id: string) => send<undefined>('DELETE', path('environments', id)),

    /** @param boxId only the secrets that the box may mount */
    listSecrets: (boxId?: string) =>
      send<{ secrets: Secret[] }>(
        'GET',
        `secrets${boxId === undefined ? '' : `?${new URLSearchParams({ box: boxId })}`}`,
      ),
    createSecret: (request: CreateSecretRequest) => send<{ secret: Secret }>('POST', 'secrets', request),
    updateSecret: (id: string, request: PatchSecretRequest) =>
      send<{ secret: Secret }>('PATCH', path('secrets', id), request),
    deleteSecret: (id: string) => send<undefined>('DELETE', path('secrets', id)),
    grantSecret: (id: string, grantee: Grantee) =>
      send<{ grant: SecretGrant }>('POST', path('secrets', id, '/grants'), grantee),
    removeGrant: (id: string, grantId: string) =>
      send<undefined>('DELETE', path(path('secrets', id, '/grants'), grantId)),
    listSecretUses: (id: string) => send<{ uses: SecretUse[] }>('GET', path('secrets', id, '/usage')),
    listMounts: (boxId: string) => send<MountList>('GET', path('boxes', boxId, '/secrets')),
    mountSecret: (boxId: string, request: MountSecretRequest) =>
      send<{ mount: SecretMount }>('POST', path('boxes', boxId, '/secrets'), request),
    unmountSecret: (boxId: string, mountId: string) =>
      send<undefined>('DELETE', path(path('boxes', boxId, '/secrets'), mountId)),

    listImages: () => send<ImageList>('GET', 'images'),
    removeImage: ({ reference, region }: Pick<Image, 'reference' | 'region'>) =>
      send<undefined>('DELETE', `images?${new URLSearchParams({ image: reference, region })}`),

    listAwsRoles: () => send<AwsRoleList>('GET', 'aws-roles'),
    connectAwsRole: (request: ConnectRoleRequest) => send<AwsRoleResponse>('POST', 'aws-roles', request),
    verifyAwsRole: (id: string) => send<AwsRoleResponse>('POST', path('aws-roles', id, '/verify')),
    disconnectAwsRole: (id: string) => send<undefined>('DELETE', path('aws-roles', id)),
    createAwsConnect: (request: CreateAwsConnectRequest) => send<AwsConnect>('POST', 'aws-connect', request),
    cancelAwsConnect: (id: string) => send<undefined>('DELETE', path('aws-connect', id)),

    listKeys: () => send<KeyList>('GET', 'keys'),
    createKey: (request: CreateKeyRequest) => send<KeyWithSecret>('POST', 'keys', request),
    updateKey: (id: string, request: UpdateKeyRequest) =>
      send<{ key: ApiKey }>('PATCH', path('keys', id), request),
    rotateKey: (id: string) => send<KeyWithSecret>('POST', path('keys', id, '/rotate')),
    revokeKey: (id: string) => send<undefined>('DELETE', path('keys', id)),

    listMembers: () => send<{ members: Member[] }>('GET', 'members'),
    inviteMember: (request: InviteRequest) => send<Invitation>('POST', 'members', request),
    updateMember: (id: string, request: UpdateMemberRequest) =>
      send<{ member: Member }>('PATCH', path('members', id), request),
    removeMember: (id: string) => send<undefined>('DELETE', path('members', id)),

    changePolicies: (request: PatchPolicyRequest) =>
      send<PolicyResponse>('PATCH', 'workspace/policies', request),

    listAuditEvents: (query: URLSearchParams) => send<AuditList>('GET', `audit?${query}`),
    loadAuditChain: (after: number) => send<AuditChainPage>('GET', `audit/chain?after=${after}`),

    listSessions: () => send<{ sessions: Session[] }>('GET', 'sessions'),
    endSession: (id: string) => send<undefined>('DELETE', path('sessions', id)),
    requestEmail: (email: string) => send<IssuedCode>('POST', 'session/email', { email }),
    confirmEmail: (id: string, code: string) =>
      send<{ user: SignedInUser }>('POST', 'session/email/confirm', { id, code }),
    renameUser: (name: string) => send<{ user: SignedInUser }>('PATCH', 'session/user', { name }),

    listEnrollments: () => send<EnrollmentList>('GET', 'machines'),
    createEnrollment: (request: CreateEnrollmentRequest) =>
      send<CreateEnrollmentResponse>('POST', 'machines', request),
    deleteEnrollment: (id: string) => send<undefined>('DELETE', path('machines', id)),
    listAgents: () => send<AgentList>('GET', 'agents'),
    changeRollout: (request: PatchRolloutRequest) =>
      send<RolloutResponse>('PATCH', 'agents/rollout', request),

    loadBilling: () => send<BillingDetails>('GET', 'billing'),
    /** @param before nextBefore of the previous page */
    listBillingEntries: (before: string | null) =>
      send<EntryList>(
        'GET',
        `billing/entries${before === null ? '' : `?${new URLSearchParams({ before })}`}`,
      ),
    /** What boxes have cost in the month, by box, by member and by day. */
    /** What the boxes or the members have cost in the month, in total and on each day. */
    async loadUsage(month: string, split: 'box' | 'member') {
      const load = <By extends Usage['by']>(query: { by: By; split?: string }) =>
        send<Extract<Usage, { by: By }>>('GET', `usage?${new URLSearchParams({ month, ...query })}`)
      const [total, { rows: days, totalMicros }] = await Promise.all([
        load({ by: split }),
        load({ by: 'day', split }),
      ])
      return { month, totalMicros, days, rows: total.rows }
    },
    /** @returns the page of the payment provider */
    startPayment: (amountUsd: number) => send<{ url: string }>('POST', 'billing/checkout', { amountUsd }),

    loadWorkspace: () => send<{ workspace: Workspace }>('GET', 'workspace'),
    updateWorkspace: (request: UpdateWorkspaceRequest) =>
      send<{ workspace: Workspace }>('PATCH', 'workspace', request),
    closeWorkspace: (name: string) => send<{ workspace: Workspace }>('POST', 'workspace/close', { name }),
    reopenWorkspace: () => send<{ workspace: Workspace }>('POST', 'workspace/reopen'),
  }
}
