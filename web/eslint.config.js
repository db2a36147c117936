import reactHooks from "eslint-plugin-react-hooks";
import tseslint from "typescript-eslint";

export default tseslint.config(
  { ignores: ["node_modules", "public", "tests/*.mjs"] },
  ...tseslint.configs.strict,
  reactHooks.configs.flat["recommended-latest"] ?? reactHooks.configs.flat.recommended,
  { rules: { "@typescript-eslint/no-non-null-assertion": "off", "no-console": "error", eqeqeq: ["error", "always", { null: "ignore" }], "react-hooks/incompatible-library": "off" } },
);
