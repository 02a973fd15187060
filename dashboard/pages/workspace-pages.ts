// The pages of the workspace. Each is a file of its own.
import type { ComponentType } from 'preact'

export const WORKSPACE_PAGE_VIEWS: Readonly<Record<string, ComponentType>> = {}
