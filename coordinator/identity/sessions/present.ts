// The API's form of sessions and their users.
import type { Session, SignedIn, SignedInUser } from '../../../shared/api/sessions.ts'
import { toTimestamp } from '../../../shared/clock.ts'
import type { SessionRow } from '../../db/schema.ts'
import type { Membership } from '../store/members.ts'

export const presentSession = (row: SessionRow, currentId: string): Session => ({
  id: row.id,
  createdAt: toTimestamp(row.created_at),
  lastUsedAt: toTimestamp(row.last_used_at),
  expiresAt: toTimestamp(row.expires_at),
  userAgent: row.user_agent,
  address: row.address,
  isCurrent: row.id === currentId,
})

export const presentUser = ({ id, email, name, role }: Membership): SignedInUser => ({
  id,
  email,
  name,
  role,
})

export const presentSignedIn = (session: SessionRow, user: Membership): SignedIn => ({
  session: presentSession(session, session.id),
  user: presentUser(user),
  workspace: { id: user.workspace_id, name: user.workspace_name },
})
