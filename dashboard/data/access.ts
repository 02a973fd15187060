// What a role may do, as docs/access.md has it. The coordinator decides; the pages do not offer what it would refuse.
import type { CurrentSession } from '../../shared/api/sessions.ts'
import { WORKSPACE_PAGES, type WorkspacePage } from './routes.ts'

export type Role = CurrentSession['user']['role']

/** Contractors read neither environments nor secrets, images, AWS roles, members, policies and the audit log, and enroll no machines. */
const NOT_FOR_CONTRACTORS: readonly WorkspacePage[] = [
  'environments',
  'secrets',
  'images',
  'aws',
  'machines',
  'members',
  'policies',
  'audit',
]

const FOR_OWNERS: readonly WorkspacePage[] = ['billing']

export const mayOpenPage = (role: Role, page: WorkspacePage): boolean =>
  FOR_OWNERS.includes(page) ? role === 'owner' : role !== 'contractor' || !NOT_FOR_CONTRACTORS.includes(page)

/** What of the session decides which pages there are. */
export type PageUser = { user: { role: Role }; billing: CurrentSession['billing'] }

/** The pages of the workspace that the user may open, with their labels. */
export const listWorkspacePages = ({ user, billing }: PageUser): [WorkspacePage, string][] =>
  (Object.entries(WORKSPACE_PAGES) as [WorkspacePage, string][])
    .filter(([page]) => mayOpenPage(user.role, page))
    .filter(([page]) => page !== 'billing' || billing !== 'off')

/** Whether the role may enroll machines, with this value of the policy. */
export const mayEnrollMachines = (role: Role, policy: 'owner' | 'member'): boolean =>
  role === 'owner' || (role === 'member' && policy === 'member')

/** Whether the role may remove images of an engine, which all workspaces use. */
export const mayRemoveImages = (role: Role): boolean => role === 'owner'

/** Whether the role may use secrets. */
export const mayUseSecrets = (role: Role): boolean => role !== 'contractor'

/** Whether the role may read environments and images. */
export const mayReadEnvironments = (role: Role): boolean => role !== 'contractor'
