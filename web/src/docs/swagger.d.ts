declare module "swagger-ui-dist/swagger-ui-es-bundle.js" {
  const start: (options: Record<string, unknown>) => unknown;
  export default start;
}
declare module "swagger-ui-dist/swagger-ui.css";
