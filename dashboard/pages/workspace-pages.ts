// The pages of the workspace. Each is a file of its own.
import type { ComponentType } from 'preact'
import type { WorkspacePage } from '../data/routes.ts'
import { lazy } from '../views/lazy.tsx'

export const WORKSPACE_PAGE_VIEWS: Readonly<Record<WorkspacePage, ComponentType>> = {
  prompts: lazy(async () => (await import('./workspace/prompts.tsx')).PromptsPage),
  snapshots: lazy(async () => (await import('./workspace/snapshots.tsx')).SnapshotsPage),
  environments: lazy(async () => (await import('./workspace/environments.tsx')).EnvironmentsPage),
  secrets: lazy(async () => (await import('./workspace/secrets.tsx')).SecretsPage),
  images: lazy(async () => (await import('./workspace/images.tsx')).ImagesPage),
  machines: lazy(async () => (await import('./workspace/machines.tsx')).MachinesPage),
  aws: lazy(async () => (await import('./workspace/aws.tsx')).AwsPage),
  keys: lazy(async () => (await import('./workspace/keys.tsx')).KeysPage),
  members: lazy(async () => (await import('./workspace/members.tsx')).MembersPage),
  policies: lazy(async () => (await import('./workspace/policies.tsx')).PoliciesPage),
  audit: lazy(async () => (await import('./workspace/audit.tsx')).AuditPage),
  billing: lazy(async () => (await import('./workspace/billing.tsx')).BillingPage),
  sessions: lazy(async () => (await import('./workspace/sessions.tsx')).SessionsPage),
  settings: lazy(async () => (await import('./workspace/settings.tsx')).SettingsPage),
}
