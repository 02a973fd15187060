// Rows of a workspace in every table, for tests that delete workspaces.
import type { Insertable, Kysely } from 'kysely'
import { newBoxRow } from '../../coordinator/boxes/create.ts'
import type { Db } from '../../coordinator/db/open.ts'
import type { BoxRow, Tables } from '../../coordinator/db/schema.ts'
import type { Actor } from '../../coordinator/http/actor.ts'

/** Tables whose rows belong to no workspace. */
export const GLOBAL_TABLES = [
  'signing_keys',
  'deleted_machines',
  'federation_keys',
  'free_credits',
  'program_versions',
  'image_downloads',
  'warm_machines',
  'replicas',
  'deployment_values',
] as const

type TableRows = { [T in Exclude<keyof Tables, (typeof GLOBAL_TABLES)[number]>]: Insertable<Tables[T]>[] }

export type WorkspaceRows = {
  workspaceId: string
  /** Of the members: the first is an owner. */
  emails: readonly string[]
  now: number
  box?: Partial<BoxRow>
}

/** @returns at least one row of every table, in the order in which they can be inserted */
export function createWorkspaceRows({ workspaceId, emails, now, box: boxChanges }: WorkspaceRows): TableRows {
  const id = (name: string) => `${name}_${workspaceId}`
  const ofWorkspace = { workspace_id: workspaceId }
  const users = emails.map((email, n) => ({
    ...{ id: id(`usr${n}`), email, name: email, role: n === 0 ? ('owner' as const) : ('member' as const) },
    ...{ ...ofWorkspace, created_at: now, joined_at: now, removed_at: null },
  }))
  const userId = id('usr0')
  const actor = { ...ofWorkspace, workspaceId, userId, role: 'owner' } as unknown as Actor
  const box: BoxRow = {
    ...newBoxRow({
      ...{
        input: {},
        source: null,
        environment: null,
        machine: { region: 'us-west-2', provider: 'local', image: null, imageDigest: null },
        host: null,
        actor,
        ownerUserId: userId,
        hostname: 'fig',
        now,
      },
    }),
    id: id('box'),
    ...boxChanges,
  }
  const bytes = new Uint8Array([1])
  const job = { attempt: 0, last_error: null, next_retry_at: null, lease_owner: null }
  const created = { created_at: now, expires_at: now + 1 }
  const code = { code_hash: 'c', attempts: 0, ...created, used_at: null, key_id: null }
  return {
    workspaces: [
      {
        ...{ id: workspaceId, name: workspaceId, zero_data_retention: 0 as const, created_at: now },
        ...{ closing_at: null, purge_after: null },
      },
    ],
    users,
    api_keys: [null, userId].map((user_id, n) => ({
      ...{ id: id(`key${n}`), ...ofWorkspace, user_id, hash: id(`key${n}`), kind: 'api' as const, name: 'a' },
      ...{ expires_at: null, revoked_at: null, box_ids: null, access: null, created_at: now },
    })),
    boxes: [box],
    tunnels: [{ box_id: box.id, lease_owner: null, generation: 1, instance_id: 'a', agent: '{}' }],
    box_events: [
      { box_id: box.id, from_state: null, to_state: 'requested', reason: 'a', actor: 'a', at: now },
    ],
    jobs: [
      { box_id: box.id, op: 'create', step: 'provision', ...job, actor: 'a', reason: null, created_at: now },
    ],
    operations: [
      {
        ...{ id: id('dop'), ...ofWorkspace, kind: 'box_delete' as const, target_id: box.id },
        ...{ status: 'pending' as const, requested_at: now, completed_at: null, error: null },
      },
    ],
    snapshots: [
      {
        ...{ id: id('snp'), ...ofWorkspace, owner_user_id: userId, name: 'a', status: 'deleting' as const },
        ...{ kind: 'manual' as const, transient: 0 as const, box_id: box.id, source_hostname: 'fig' },
        ...{ tier: box.tier, region: box.region, restricted: 0 as const, env_vars: '[]', mounts: '[]' },
        ...{ created_at: now, updated_at: now },
      },
    ] as Insertable<Tables['snapshots']>[],
    snapshot_jobs: [
      { snapshot_id: id('snp'), op: 'delete', ...job, actor: 'a', operation_id: null, created_at: now },
    ],
    schedules: [
      { kind: 'pause', target_id: box.id, due_at: now },
      { kind: 'erase', target_id: workspaceId, due_at: now },
      { kind: 'purge_workspace', target_id: workspaceId, due_at: now },
    ],
    box_moves: [{ box_id: box.id, ...ofWorkspace, at: now }],
    last_prompts: [{ box_id: box.id, ...ofWorkspace, at: now }],
    idempotency_keys: ['a', 'b'].map((key) => ({
      ...{
        ...ofWorkspace,
        route: 'POST /boxes',
        key,
        fingerprint: 'a',
        status: 202,
        body: '{}',
        created_at: now,
      },
    })),
    deletions: ['a', 'b'].map((n) => ({ ...ofWorkspace, resource_id: id(`deleted-${n}`), deleted_at: now })),
    commands: [null, now].map((deleted_at, n) => ({
      ...{ id: id(`p${n}`), box_id: box.id, mode: 'sync' as const, source: 'api' as const, command: 'a' },
      ...{
        command_truncated: 0 as const,
        cwd: null,
        status: 'running' as const,
        exit_code: null,
        signal: null,
      },
      ...{ pid: null, requested_at: now, started_at: now, finished_at: null, actor_kind: 'user' as const },
      ...{ actor_user_id: userId, actor_token_id: null, output_kept: 1 as const, deleted_at },
      ...{ stdout_bytes: 1, stdout_start: 0, stderr_bytes: 0, stderr_start: 0 },
    })),
    command_output: [{ command_id: id('p0'), stream: 'stdout', start_offset: 0, size: 1, data: bytes }],
    metric_chunks: [{ box_id: box.id, res: 30, start: 0, pending_rollup: 1, data: bytes }],
    process_chunks: [{ box_id: box.id, start: 0, data: bytes }],
    sessions: [
      { id: id('ses'), hash: id('ses'), ...ofWorkspace, user_id: userId, ...created, last_used_at: now },
    ],
    sign_in_codes: [
      ...emails.map((email, n) => ({ id: id(`sic${n}`), email, ...code })),
      { id: id('sic_key'), ...code, email: emails[0] ?? '', key_id: id('key0') },
      { id: id('sic_user'), ...code, email: id('new@example.com'), user_id: userId },
    ],
    tickets: [
      {
        ...{ id: id('tkt'), hash: id('tkt'), ...ofWorkspace, user_id: userId, session_id: id('ses') },
        ...{ box_id: box.id, ...created },
      },
    ],
    share_viewers: [
      {
        ...{ id: id('shv'), ...ofWorkspace, box_id: box.id, share_id: id('share'), user_id: userId },
        ...{ credential_type: 'session' as const, credential_id: id('ses'), ...created },
        ...{ code_hash: id('code'), token_hash: id('token') },
      },
    ],
    download_links: [
      {
        ...{ hash: id('dll'), ...ofWorkspace, box_id: box.id, credential_id: id('ses') },
        ...{ path: 'notes', expires_at: now },
      },
    ],
    enrollments: [
      {
        ...{ id: id('enr'), hash: id('enr'), ...ofWorkspace, user_id: userId, credential_id: id('key0') },
        ...{ credential_kind: 'api' as const, name: null, region: box.region, restricted: 0 as const },
        ...{ env_vars: '[]', ...created, revoked_at: null, used_at: now, agent_token_hash: id('token') },
        box_id: box.id,
      },
    ],
    port_shares: [
      {
        ...{ id: id('shr'), ...ofWorkspace, box_id: box.id, port: 3000, slug: id('slug') },
        ...{ access: 'anyone' as const, secret_hash: 'h', rewrites_host: 0 as const, created_by: userId },
        ...{ ...created, ended_at: null, open_count: 1, last_opened_at: now },
      },
    ],
    environments: [
      {
        ...{ id: id('env'), ...ofWorkspace, name: 'web', description: null, is_default: 1 as const },
        ...{ latest_version_no: 1, created_at: now, updated_at: now, deleted_at: null },
      },
    ],
    environment_versions: [
      {
        environment_id: id('env'),
        version_no: 1,
        ...ofWorkspace,
        config: '{}',
        created_by: 'system',
        created_at: now,
      },
    ],
    environment_files: [
      {
        ...{ id: id('evf'), ...ofWorkspace, environment_id: id('env'), size: 1 },
        ...{ content: 'v1', key_id: 'k', created_at: now },
      },
    ],
    box_repos: [
      {
        ...{ box_id: box.id, ...ofWorkspace, repo: 'a/b', path: '~/b', ref: null, secret: null },
        ...{ state: 'ready' as const, commit_id: null, error: null, updated_at: now },
      },
    ],
    secrets: [
      {
        ...{
          id: id('sec'),
          ...ofWorkspace,
          name: 'TOKEN',
          description: null,
          hosts: '[]',
          locations: '["header"]',
          placeholder: id('dcpsec'),
        },
        ...{
          value: 'v1',
          key_id: 'k',
          scope: 'granted' as const,
          created_by: 'system',
          created_at: now,
          updated_at: now,
          last_rotated_at: null,
        },
      },
    ],
    secret_grants: [
      {
        ...{
          id: id('sgr'),
          ...ofWorkspace,
          secret_id: id('sec'),
          box_id: null,
          hostname: null,
          user_id: userId,
        },
        ...{ email: null, created_by: 'system', created_at: now },
      },
    ],
    secret_mounts: [
      {
        ...{ id: id('smt'), ...ofWorkspace, secret_id: id('sec'), box_id: box.id, env_name: 'TOKEN' },
        ...{ created_by: 'system', created_at: now },
      },
    ],
    secret_uses: [
      {
        ...{ secret_id: id('sec'), ...ofWorkspace, box_id: box.id, host: 'example.com' },
        ...{ first_at: now, last_at: now, count: 1 },
      },
    ],
    aws_roles: [
      {
        ...{ id: id('awr'), ...ofWorkspace, role_arn: 'arn', profile: 'default', created_by: 'system' },
        ...{ verified_at: null, verified_arn: null, verify_error: null, created_at: now },
      },
    ],
    aws_connects: [
      {
        ...{ id: id('awc'), ...ofWorkspace, token_hash: 'h', profile: null, user_id: userId, ...created },
        ...{ credential_type: 'key' as const, credential_id: id('key0') },
      },
    ],
    workspace_authorities: [
      { ...ofWorkspace, certificate: 'c', private_key: 'v1', key_id: 'k', created_at: now },
    ],
    agent_rollouts: [{ ...ofWorkspace, share: 20, paused: 0, updated_by: userId, updated_at: now }],
    policies: [{ ...ofWorkspace, policy: '{}', updated_by: userId, updated_at: now }],
    audit_log: [1, 2].map((no) => ({
      ...{ ...ofWorkspace, no, at: now, kind: 'box.create', origin: 'server' as const, box_id: box.id },
      ...{ actor_kind: 'user' as const, actor_user_id: userId, actor_token_id: null, detail: '{}' },
      ...{ salt: 's', detail_hash: 'd', hash: `${no}` },
    })),
    billing_accounts: [
      {
        ...{ ...ofWorkspace, balance_micros: 5_000_000, charged_until: 0, paid_at: null, hold: null },
        ...{ flagged_at: null, warned_at: null, emptied_at: null, customer_id: null, created_at: now },
        ...{ payment_method_id: null, collecting_since: null, payment_failed_at: null },
        ...{
          payment_failure: null,
          payment_grace_until: null,
          card_paid_micros: 0,
          collection_micros: null,
          free_credit_decided_at: now,
        },
      },
    ],
    billing_entries: [
      {
        ...{ ...ofWorkspace, cause: 'free_credit', kind: 'free_credit' as const, amount_micros: 5_000_000 },
        ...{ debit: 'promotions' as const, credit: 'balance' as const, box_id: null, user_id: null },
        ...{ since: null, until: null, note: null, at: now },
      },
    ],
    billing_meters: [
      {
        ...{ subject_id: box.id, ...ofWorkspace, box_id: box.id, user_id: userId, tier: box.tier },
        ...{ mode: 'compute' as const, megabytes: 0, since: 1, carry: 0 },
      },
    ],
    billing_segments: [
      {
        ...{ subject_id: box.id, ...ofWorkspace, box_id: box.id, user_id: userId, tier: box.tier },
        ...{ mode: 'disk' as const, megabytes: 0, since: 0, until: 1 },
      },
    ],
    billing_totals: [
      {
        ...{ ...ofWorkspace, period: '2030-01', box_id: box.id, user_id: userId },
        ...{ amount_micros: 1, compute_seconds: 1 },
      },
    ],
    audit_heads: [{ ...ofWorkspace, no: 2, hash: '2', at: now, pruned_no: 0, pruned_hash: '0' }],
    audit_sinks: [
      {
        ...{ ...ofWorkspace, url: 'https://example.com', secret: 's', delivered_no: 0, attempt: 0 },
        ...{ next_attempt_at: null, last_error: null, last_delivered_at: null, updated_by: userId },
        updated_at: now,
      },
    ],
  }
}

export async function insertWorkspaceRows(db: Db, rows: TableRows): Promise<void> {
  for (const [table, values] of Object.entries(rows))
    await (db as unknown as Kysely<Record<string, object>>).insertInto(table).values(values).execute()
}

/** All rows of all tables of the database, as text. */
export async function readAllRows(db: Db): Promise<Record<string, string[]>> {
  const tables = await db.introspection.getTables()
  const rows: Record<string, string[]> = {}
  for (const { name } of tables) {
    const found = await (db as unknown as Kysely<Record<string, object>>)
      .selectFrom(name)
      .selectAll()
      .execute()
    rows[name] = found.map((row) => JSON.stringify(row)).sort()
  }
  return rows
}
