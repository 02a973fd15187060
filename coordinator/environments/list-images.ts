// The images that the environments of all workspaces give to new boxes.
import type { Db } from '../db/open.ts'
import { parseConfig } from './config.ts'
import { listLatestConfigs } from './store/environments.ts'

/** As they were requested. */
export async function listEnvironmentImages(db: Db): Promise<string[]> {
  const configs = await listLatestConfigs(db)
  return configs.map((config) => parseConfig(config).image).filter((image) => image !== null)
}
