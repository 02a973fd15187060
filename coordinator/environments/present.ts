// Converts rows of environments to API objects (spec §2.12).
import type { Environment } from '../../shared/api/environments.ts'
import { toTimestamp } from '../../shared/clock.ts'
import type { EnvironmentRow } from '../db/schema.ts'
import type { EnvironmentConfig } from './config.ts'

export const presentEnvironment = (
  row: EnvironmentRow,
  { vars, files, repos, image, toggles }: EnvironmentConfig,
  boxCount: number,
): Environment => ({
  id: row.id,
  name: row.name,
  description: row.description,
  isDefault: row.is_default === 1,
  latestVersionNo: row.latest_version_no,
  vars: [...vars],
  files: files.map(({ path, mode, size, updatedAt }) => ({
    path,
    mode,
    size,
    updatedAt: toTimestamp(updatedAt),
  })),
  repos: [...repos],
  image,
  toggles,
  boxCount,
  createdAt: toTimestamp(row.created_at),
  updatedAt: toTimestamp(row.updated_at),
})
