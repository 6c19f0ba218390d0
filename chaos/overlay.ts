/** The same object for its user, but for what is given in its place. Called by whatever wraps a store. */
export function overlaid<Target extends object>(target: Target, own: Partial<Target>): Target {
  return new Proxy(target, {
    get: (_, name) => {
      const instead = own[name as keyof Target]
      if (instead !== undefined) return instead
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}
