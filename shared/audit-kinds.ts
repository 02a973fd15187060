// The kinds of audit events (spec §4.12).

/** The kinds of events that clients may report (spec §4.12). */
export const CLIENT_AUDIT_KINDS = ['exec', 'file.upload', 'file.download', 'prompt', 'desktop.start'] as const

/** The kinds of events that the coordinator records, with a description for the documentation. */
export const SERVER_AUDIT_KINDS = {
  'session.sign_in': 'a user signed in',
  'session.sign_out':
    'a session was ended by its user, or as the oldest of more than 50 sessions of the user',
  'session.switch': 'a session changed its workspace',
  'sign_in.rejected': 'a sign-in with a wrong or expired code',
  'key.create': 'an API key was created',
  'key.update': 'the name, expiry or access of an API key was changed',
  'key.rotate': 'an API key got a new secret',
  'key.revoke': 'an API key was revoked',
  'key.verify': 'the emailed code of a new agent account was confirmed',
  'ticket.create':
    'a session created terminal tickets; at most one event an hour for each session, with its first ticket and box',
  'member.invite': 'a member was invited',
  'member.update': 'the role, name or email address of a member was changed',
  'member.remove': 'a member was removed',
  'workspace.create': 'the workspace was created',
  'workspace.update': 'the name or the data retention of the workspace was changed',
  'workspace.close': 'the closing of the workspace was requested',
  'workspace.reopen': 'a closing workspace was reopened',
  'policy.update': 'policies were changed',
  'agent_rollout.update':
    'the share of the boxes that get new agent builds was changed, or their upgrades were paused or resumed',
  'audit.export': 'the audit log was downloaded as CSV',
  'audit.prune': 'expired events were deleted',
  'audit_sink.update': 'the export of the audit log was configured',
  'audit_sink.delete': 'the export of the audit log was removed',
  'access.denied':
    'a request was refused: the credential has expired or been revoked, or does not allow it; repeated refusals of a credential on a route are recorded once a minute',
  'machine.token_create': 'a token for enrolling a machine was created',
  'machine.token_revoke': 'a token for enrolling a machine was revoked',
  'machine.enroll': 'a machine was enrolled as a box; the actor is the creator of the token',
  'box.create': 'a box was created',
  'box.update': 'the name, settings, labels or environment variables of a box were changed',
  'box.wake': 'a box was woken',
  'box.suspend': 'a box was suspended, or the processes of a suspended box were terminated',
  'box.sleep': 'a suspended box was packed into an archive, which frees its disk',
  'box.resize': 'the tier of a box was changed',
  'box.move': 'a box was moved to another region',
  'box.give': 'a box was given to another member',
  'box.fork': 'a box was forked',
  'box.delete': 'a box was deleted',
  'box.connect': 'a terminal or the desktop was opened; the event does not prove that a client used it',
  'box.forward':
    'a TCP connection to a port of a box was opened; at most one event an hour for each credential, box and port',
  'box.desktop_start': 'a mode of the desktop of a box was started',
  'box.desktop_stop': 'a mode of the desktop of a box was stopped',
  'port_share.create': 'a link to a port of a box was created',
  'port_share.update': 'the setting rewriteHost of a link was changed',
  'port_share.revoke': 'a link was revoked, or replaced by one of another audience',
  'port_share.open': 'the actor started to view a link for members in a browser',
  'environment.create': 'an environment was created',
  'environment.update':
    'the name, description or configuration of an environment was changed; the event has the names of what changed, and no values',
  'environment.default': 'an environment became the default for new boxes, or stopped being it',
  'environment.upgrade': 'boxes of an environment were pinned to its latest version',
  'environment.delete': 'an environment was deleted',
  'box.repos_update': 'the update of the repositories of a box was requested',
  'box.restrict': 'a box became restricted',
  'secret.create': 'a secret was created',
  'secret.update':
    'the description, the hosts, the scope or the locations in requests of a secret were changed; the event has the added and removed hosts and locations, and the scope workspace when its grants were removed',
  'secret.rotate': 'a secret got a new value',
  'secret.delete': 'a secret was deleted',
  'secret.grant': 'a secret was granted to a box or a member',
  'secret.ungrant': 'a grant of a secret was removed',
  'secret.mount': 'a secret was mounted on a box',
  'secret.unmount':
    'a secret was unmounted from a box, by a request or because a grant or the box no longer allows it',
  'aws_role.connect': 'an AWS role was connected',
  'aws_role.verify': 'it was verified whether the workspace can assume an AWS role',
  'aws_role.disconnect': 'an AWS role was disconnected',
  'aws_connect.create': 'a link that connects an AWS role was created; it cancels the previous one',
  'aws_connect.cancel': 'a link that connects an AWS role was cancelled',
  'federation.rotate': 'the signing key of the identity issuer was rotated by a request',
  'snapshot.create': 'a snapshot was taken',
  'snapshot.restore': 'a box was created from a snapshot',
  'snapshot.delete': 'a snapshot was deleted',
  'template.create': 'a template was taken, or a snapshot became a template',
  'template.delete': 'a template became a snapshot',
  'billing.low': 'the balance became low',
  'billing.empty': 'the balance became empty; the boxes are suspended',
  'billing.credit': 'an operator added credit, or removed some',
  'billing.hold': 'an operator paused the workspace; its boxes are suspended',
  'billing.release': 'the workspace is not paused any more',
  'billing.payment': 'a payment by card was received',
  'billing.payment_failed': 'a payment from the saved card failed',
  'billing.refund': 'a payment by card was refunded',
  'billing.card_remove': 'the saved card was removed',
  'image.pull': 'the download of an image was requested',
  'image.remove': 'an image was removed',
  'command_history.delete': 'records of the command history were deleted',
} as const

export type ServerAuditKind = keyof typeof SERVER_AUDIT_KINDS
export type ClientAuditKind = (typeof CLIENT_AUDIT_KINDS)[number]
export type AuditKind = ServerAuditKind | ClientAuditKind
export const AUDIT_KINDS = [
  ...(Object.keys(SERVER_AUDIT_KINDS) as ServerAuditKind[]),
  ...CLIENT_AUDIT_KINDS,
] as const

const MAX_SIMILAR = 8

/** Shortest first: the kinds whose words include those of a text that is no kind, such as box.delete for delete and for deleted-box. */
export function findSimilarKinds(text: string): AuditKind[] {
  const words = splitWords(text)
  if (words.length === 0) return []
  return AUDIT_KINDS.filter((kind) => {
    const known = splitWords(kind)
    return words.every((word) => known.some((other) => word.startsWith(other) || other.startsWith(word)))
  })
    .sort((a, b) => a.length - b.length)
    .slice(0, MAX_SIMILAR)
}

const splitWords = (text: string): string[] =>
  text
    .toLowerCase()
    .split(/[^a-z]+/)
    .filter(Boolean)
